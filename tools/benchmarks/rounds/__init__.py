"""Programs of whole arrays, round by round, as users write them."""
