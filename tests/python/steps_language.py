"""Training steps of models of language, for tests and benchmarks of planc_torch (see torchsteps.py for what a step is)."""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

from torchtraining import adamw, fused_adamw, seeded, sgd, trained

WORDS, LENGTH, BATCH = 96, 32, 4


def attended(q, k, v, bias=None, causal=False):
    """PyTorch's own attention where it has a function for it."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        bias = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if bias is not None:
        scores = scores.masked_fill(~bias, -math.inf) if bias.dtype == torch.bool else scores + bias
    return scores.softmax(-1) @ v


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


def words_and_next():
    return torch.randint(0, WORDS, (BATCH, LENGTH)), torch.randint(0, WORDS, (BATCH, LENGTH))


def next_word_loss(model, words, following):
    return functional.cross_entropy(model(words).flatten(0, 1), following.flatten())


# --- GPT-2 ------------------------------------------------------------------------------------------------------------


class Gpt2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.drop(self.out(joined(attended(q, k, v, causal=True))))
        return x + self.drop(self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Gpt2(nn.Module):
    def __init__(self, width=48, heads=4, layers=3, through=lambda block, x: block(x)):
        super().__init__()
        self.words, self.places, self.through = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width), through
        self.blocks = nn.ModuleList(Gpt2Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words):
        x = self.words(words) + self.places.weight[:words.shape[1]]
        for block in self.blocks:
            x = self.through(block, x)
        return self.head(self.norm(x))


def gpt2():
    """Fused AdamW, clipping, two micro-batches, a scheduler."""
    seeded()
    return trained(Gpt2(), words_and_next, next_word_loss, fused_adamw, clip=1.0, micro=True,
                   schedule=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 100))


def gpt2_reentrant():
    """Each block recomputes itself, reentrant, under autocast."""
    seeded()
    return trained(Gpt2(through=lambda block, x: checkpoint(block, x, use_reentrant=True)), words_and_next, next_word_loss, adamw,
                   autocast=torch.bfloat16)


# --- LLaMA ------------------------------------------------------------------------------------------------------------


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x)


def turned(x, cos, sin):
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups):
        super().__init__()
        self.heads, self.groups, head = heads, groups, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, groups * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x, cos, sin):
        y = self.norm1(x)
        q, k, v = heads_of(self.q(y), self.heads), heads_of(self.k(y), self.groups), heads_of(self.v(y), self.groups)
        q, k = turned(q, cos, sin).to(v.dtype), turned(k, cos, sin).to(v.dtype)
        k, v = (part.repeat_interleave(self.heads // self.groups, 1) for part in (k, v))
        x = x + self.out(joined(attended(q, k, v, causal=True)))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, width=48, heads=4, groups=2, layers=3, through=lambda block, *args: block(*args)):
        super().__init__()
        self.through = through
        self.words, self.norm, self.head = nn.Embedding(WORDS, width), RmsNorm(width), nn.Linear(width, WORDS, bias=False)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups) for _ in range(layers))
        head = width // heads
        self.register_buffer("rates", 10000.0 ** (-torch.arange(0, head, 2) / head), persistent=False)

    def forward(self, words):
        angles = torch.arange(words.shape[1])[:, None] * self.rates
        angles = torch.cat((angles, angles), -1)
        cos, sin, x = angles.cos(), angles.sin(), self.words(words)
        for block in self.blocks:
            x = self.through(block, x, cos, sin)
        return self.head(self.norm(x))


def llama():
    """One parameter after the other, clipping, bf16 by autocast, a warm-up."""
    seeded()
    return trained(Llama(), words_and_next, next_word_loss, lambda m: adamw(m, foreach=False), clip=1.0, autocast=torch.bfloat16,
                   schedule=lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=10))


def llama_checkpointed():
    """Each block recomputes itself, not reentrant."""
    seeded()
    return trained(Llama(through=lambda block, *args: checkpoint(block, *args, use_reentrant=False)), words_and_next,
                   next_word_loss, lambda m: adamw(m, foreach=True))


# --- BERT -------------------------------------------------------------------------------------------------------------


@dataclass
class Outputs:
    loss: torch.Tensor
    words: torch.Tensor
    sentence: torch.Tensor


class BertBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(0.1)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, bias):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.q, self.k, self.v))
        shares = self.drop((q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias).softmax(-1))
        x = self.norm1(x + self.drop(self.out(joined(shares @ v))))
        return self.norm2(x + self.drop(self.down(functional.gelu(self.up(x)))))


class Bert(nn.Module):
    def __init__(self, width=48, heads=4, layers=3):
        super().__init__()
        self.words, self.places, self.types = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width), nn.Embedding(2, width)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.1)
        self.blocks = nn.ModuleList(BertBlock(width, heads) for _ in range(layers))
        self.head, self.pooler, self.is_next = nn.Linear(width, WORDS), nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, words, mask, types, labels, follows):
        x = self.words(words) + self.places(torch.arange(words.shape[1])) + self.types(types)
        bias = (1.0 - mask[:, None, None].float()) * torch.finfo(torch.float32).min
        x = self.drop(self.norm(x))
        for block in self.blocks:
            x = block(x, bias)
        logits, sentence = self.head(x), self.is_next(self.pooler(x[:, 0]).tanh())
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return Outputs(loss + functional.cross_entropy(sentence, follows), logits, sentence)


def sentences():
    words = torch.randint(0, WORDS, (BATCH, LENGTH))
    lengths = torch.tensor([LENGTH, LENGTH - 5, LENGTH - 9, LENGTH])
    mask = (torch.arange(LENGTH) < lengths[:, None]).long()
    labels = torch.where(torch.rand(BATCH, LENGTH) < 0.3, words, torch.tensor(-100))
    return {"words": words, "mask": mask, "types": torch.randint(0, 2, (BATCH, LENGTH)), "labels": labels,
            "follows": torch.randint(0, 2, (BATCH,))}


def bert():
    """Padding masks, a batch and outputs with names, weight decay for matrices alone."""
    seeded()
    model = Bert()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": others, "weight_decay": 0.0}], lr=1e-3)
    return trained(model, sentences, lambda m, batch: m(**batch).loss, lambda _: optimizer, clip=1.0,
                   result=lambda loss: {"loss": loss})


# --- T5 ---------------------------------------------------------------------------------------------------------------


class T5Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm = heads, RmsNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, memory=None, bias=None):
        y = self.norm(x)
        source = y if memory is None else memory
        q, k, v = (heads_of(layer(z), self.heads) for layer, z in ((self.q, y), (self.k, source), (self.v, source)))
        scores = q @ k.transpose(-1, -2)
        scores = scores if bias is None else scores + bias
        return x + self.out(joined(functional.dropout(scores.softmax(-1), 0.1, self.training) @ v))


class T5Stack(nn.Module):
    """With memory a decoder: causal, and attending to it."""

    def __init__(self, width, heads, layers, is_decoder):
        super().__init__()
        self.is_decoder, self.bias = is_decoder, nn.Embedding(8, heads)
        self.own = nn.ModuleList(T5Attention(width, heads) for _ in range(layers))
        self.cross = nn.ModuleList(T5Attention(width, heads) for _ in range(layers * is_decoder))
        self.wide = nn.ModuleList(nn.Sequential(RmsNorm(width), nn.Linear(width, 4 * width, bias=False), nn.ReLU(),
                                                nn.Linear(4 * width, width, bias=False)) for _ in range(layers))
        self.norm = RmsNorm(width)

    def relative(self, length):
        places = torch.arange(length)
        apart = places[None] - places[:, None]
        near = (apart.abs().float() + 1).log2().long().clamp(max=3)
        bias = self.bias(near + 4 * (apart > 0)).permute(2, 0, 1)[None]
        return bias.masked_fill(apart > 0, -1e9) if self.is_decoder else bias

    def forward(self, x, memory=None):
        bias = self.relative(x.shape[1])
        for i, (own, wide) in enumerate(zip(self.own, self.wide)):
            x = own(x, bias=bias)
            x = self.cross[i](x, memory) if self.is_decoder else x
            x = x + wide(x)
        return self.norm(x)


class T5(nn.Module):
    def __init__(self, width=48, heads=4, layers=2):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.encoder, self.decoder = T5Stack(width, heads, layers, False), T5Stack(width, heads, layers, True)

    def forward(self, words, target):
        y = self.decoder(self.words(target), self.encoder(self.words(words)))
        return functional.linear(y, self.words.weight) * y.shape[-1] ** -0.5


def t5():
    """SGD with momentum, two micro-batches; the target is shifted within the step."""
    seeded()

    def loss_of(model, words, target):
        before = functional.pad(target[:, :-1], (1, 0))
        return functional.cross_entropy(model(words, before).transpose(1, 2), target)

    return trained(T5(), words_and_next, loss_of, sgd, micro=True)


# --- Recurrent --------------------------------------------------------------------------------------------------------


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=0)
        self.lstm, self.out = nn.LSTM(width, width, 2, batch_first=True, bidirectional=True), nn.Linear(2 * width, 12)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.words(words), lengths, batch_first=True, enforce_sorted=False)
        return self.out(pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0])


def lstm_tagger():
    """Sentences of several lengths, packed; both directions; RMSprop."""
    seeded()
    lengths = torch.tensor([10, 6, 9, 4])
    return trained(Tagger(), lambda: (torch.randint(1, WORDS, (BATCH, 10)), torch.randint(0, 12, (BATCH, 10))),
                   lambda m, words, tags: functional.cross_entropy(m(words, lengths).flatten(0, 1), tags.flatten()),
                   lambda m: torch.optim.RMSprop(m.parameters(), lr=1e-3), clip=0.5)


class Translator(nn.Module):
    """A GRU reads, another one writes word by word and looks at all that was read."""

    def __init__(self, width=32):
        super().__init__()
        self.words, self.reader = nn.Embedding(WORDS, width), nn.GRU(width, width, batch_first=True)
        self.writer, self.mix, self.out = nn.GRUCell(2 * width, width), nn.Linear(2 * width, width), nn.Linear(width, WORDS)

    def forward(self, words, target):
        read, state = self.reader(self.words(words))
        state, context, written = state[0], torch.zeros_like(state[0]), []
        for t in range(target.shape[1]):
            state = self.writer(torch.cat((self.words(target[:, t]), context), -1), state)
            shares = torch.einsum("bld,bd->bl", read, state).softmax(-1)
            context = torch.einsum("bl,bld->bd", shares, read)
            written.append(torch.tanh(self.mix(torch.cat((state, context), -1))))
        return self.out(torch.stack(written, 1))


def gru_translator():
    seeded()
    return trained(Translator(), lambda: (torch.randint(0, WORDS, (8, 12)), torch.randint(0, WORDS, (8, 10))),
                   lambda m, words, target: functional.cross_entropy(m(words, target).flatten(0, 1), target.flatten()),
                   lambda m: torch.optim.Adam(m.parameters(), lr=1e-3, amsgrad=True), clip=1.0)


# --- Mixture of experts -----------------------------------------------------------------------------------------------


class Experts(nn.Module):
    """Each word goes to one of the experts, as long as that has a place left."""

    def __init__(self, width, experts=4, capacity=40):
        super().__init__()
        self.capacity, self.router = capacity, nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.1)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.1)

    def forward(self, x):
        words = x.flatten(0, 1)
        shares = self.router(words).softmax(-1)
        gate, expert = shares.max(-1)
        chosen = functional.one_hot(expert, shares.shape[-1])
        place = (chosen.cumsum(0) - 1)[torch.arange(len(words)), expert]
        has_place = (place < self.capacity).float()
        sent = functional.one_hot(place.clamp(max=self.capacity - 1), self.capacity).float() * has_place[:, None]
        sent = chosen.float()[:, :, None] * sent[:, None]
        inputs = torch.einsum("wec,wd->ecd", sent, words)
        made = torch.bmm(functional.gelu(torch.bmm(inputs, self.up)), self.down)
        balance = (chosen.float().mean(0) * shares.mean(0)).sum() * shares.shape[-1]
        return x + torch.einsum("wec,ecd->wd", sent * gate[:, None, None], made).view_as(x), balance


class Moe(nn.Module):
    def __init__(self, width=48, heads=4, layers=2):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
        self.mixing = nn.ModuleList(Gpt2Block(width, heads) for _ in range(layers))
        self.experts = nn.ModuleList(Experts(width) for _ in range(layers))

    def forward(self, words):
        x, balance = self.words(words), 0.0
        for mixing, experts in zip(self.mixing, self.experts):
            x, part = experts(mixing(x))
            balance = balance + part
        return self.head(x), balance


def moe():
    seeded()

    def loss_of(model, words, following):
        logits, balance = model(words)
        return functional.cross_entropy(logits.flatten(0, 1), following.flatten()) + 0.01 * balance

    return trained(Moe(), words_and_next, loss_of, adamw)


# --- Adapters ---------------------------------------------------------------------------------------------------------


class Adapted(nn.Module):
    """A frozen layer and two narrow ones that are trained."""

    def __init__(self, layer, rank=4):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down, self.up = nn.Linear(layer.in_features, rank, bias=False), nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


def lora():
    """Most weights are frozen."""
    seeded()
    model = Gpt2(layers=2).requires_grad_(False)
    for block in model.blocks:
        block.qkv, block.out = Adapted(block.qkv), Adapted(block.out)
    return trained(model, words_and_next, next_word_loss,
                   lambda m: torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], lr=1e-3))


STEPS = {f.__name__: f for f in (gpt2, gpt2_reentrant, llama, llama_checkpointed, bert, t5, lstm_tagger, gru_translator, moe,
                                 lora)}
