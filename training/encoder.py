"""The encoder in torch, as it is trained: six layers of BERT, and the mean of the last states.

It is written out, and not taken from a library, because ``export.py`` writes the same steps into the package's model.
The names of the parameters are those of the arrays in ``weights.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.weights import LAYERS

if TYPE_CHECKING:
    from training.weights import Weights

VOCABULARY = 30_522
HIDDEN = 384
HEADS = 12
INTERMEDIATE = 1_536
POSITIONS = 512
EPSILON = 1e-12
PADDING = 0


class Layer(nn.Module):
    """One layer: attention and a feed-forward network, each added to its input and then normalised."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.attention_output = nn.Linear(HIDDEN, HIDDEN)
        self.attention_norm = nn.LayerNorm(HIDDEN, eps=EPSILON)
        self.intermediate = nn.Linear(HIDDEN, INTERMEDIATE)
        self.output = nn.Linear(INTERMEDIATE, HIDDEN)
        self.output_norm = nn.LayerNorm(HIDDEN, eps=EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        rows, length, _ = states.shape
        projected = self.query_key_value(states).view(rows, length, 3, HEADS, HIDDEN // HEADS)
        query, key, value = projected.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        attended = self.attention_output(attended.transpose(1, 2).reshape(rows, length, HIDDEN))
        states = self.attention_norm(states + self.dropout(attended))
        outcome = self.output(functional.gelu(self.intermediate(states)))
        return self.output_norm(states + self.dropout(outcome))


class Encoder(nn.Module):
    """Turns rows of token ids, padded with zeros, into vectors of length one."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.kind = nn.Parameter(torch.zeros(HIDDEN))
        self.norm = nn.LayerNorm(HIDDEN, eps=EPSILON)
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(LAYERS))
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        present = tokens != PADDING
        states = self.words(tokens) + self.positions.weight[: tokens.shape[1]] + self.kind
        states = self.dropout(self.norm(states))
        mask = present[:, None, None, :].expand(-1, -1, tokens.shape[1], -1)
        for layer in self.layers:
            states = layer(states, mask)
        shares = present.unsqueeze(-1).to(states.dtype)
        mean = (states * shares).sum(1) / shares.sum(1)
        return functional.normalize(mean.float(), dim=-1)


def load_weights(encoder: Encoder, weights: Weights) -> None:
    """Fill ``encoder`` with ``weights``, which must have every parameter."""
    encoder.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in weights.items()})


def copy_weights(encoder: Encoder) -> Weights:
    """Return the parameters of ``encoder`` that were trained, as arrays."""
    trained = (item for item in encoder.named_parameters() if item[1].requires_grad)
    return {name: parameter.detach().float().cpu().numpy() for name, parameter in trained}
