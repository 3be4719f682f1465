# Imported for its effect: Buffer.fill records a kernel from then on.
