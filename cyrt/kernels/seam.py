"""The class of `kernels` whose objects `graph` creates."""

from cyrt.graph import recorder
from cyrt.kernels.encoder import CommandEncoder

recorder.encoder_class = CommandEncoder
