# The PyTorch side of bench/nn.ts: the same networks and numbers. Arguments: network, chance (0 or 1), threads.
# Says its version, then for each line with a number of steps makes them and prints losses and seconds.
import json
import math
import sys
import time

import numpy
import torch
import torch.nn.functional as F

name, chance, threads = sys.argv[1], sys.argv[2] == "1", int(sys.argv[3])
torch.set_num_threads(threads)
parameters = []


def wave(shape, seed, scale):
    size = math.prod(shape)
    numbers = scale * numpy.sin(numpy.arange(1, size + 1) * 12.9898 + seed)
    return torch.from_numpy(numbers.astype(numpy.float32)).reshape(shape)


def make(shape, initial=None):
    start = wave(shape, len(parameters), 1 / math.sqrt(shape[0])) if initial is None else torch.full(shape, float(initial))
    parameters.append(start.requires_grad_())
    return parameters[-1]


def layer(inputs, width):
    return make([inputs, width]), make([width], 0)


def apply(x, weights):
    return torch.addmm(weights[1], x.reshape(-1, x.shape[-1]), weights[0]).reshape(*x.shape[:-1], -1)


def gmvae():
    batch, features, labels, embedding, latent = 128, 500, 983, 2048, 64
    x, y = wave([batch, features], 1, 1), wave([batch, labels], 2, 1)
    y = (y > 0.998).float()
    y[:, 0] = 1
    encoder = [layer(features, 256), layer(256, 512), layer(512, 256)]
    heads = [layer(256, latent), layer(256, latent)]
    table, table_bias = make([labels, embedding]), make([embedding], 0)
    label_encoder = [layer(embedding, 512), layer(512, 256)]
    label_heads = [layer(256, latent), layer(256, latent)]
    decoder = [layer(features + latent, 512), layer(512, embedding)]

    def drop(h):
        return F.dropout(h, 0.5) if chance else h

    def noise():
        return torch.randn(batch, latent) if chance else torch.zeros(batch, latent)

    def loss():
        h = x
        for weights in encoder:
            h = drop(F.relu(apply(h, weights)))
        center, log_variance = apply(h, heads[0]), apply(h, heads[1])
        h = drop(F.relu(table + table_bias))
        for weights in label_encoder:
            h = drop(F.relu(apply(h, weights)))
        centers, log_variances = apply(h, label_heads[0]), apply(h, label_heads[1])
        deviation = torch.exp(0.5 * log_variance)
        samples = [noise() for _ in range(3)]
        z, second, fresh = [center + deviation * sample for sample in samples]
        counts = y.sum(1, keepdim=True)
        of_labels = y @ centers / counts
        inputs = torch.cat([torch.cat([x, code], 1) for code in (z, second, of_labels)], 0)
        decoded = F.leaky_relu(apply(F.relu(apply(inputs, decoder[0])), decoder[1]), 0.01)
        unit = decoded / decoded.norm(dim=1, keepdim=True)
        logits = unit @ table.t()
        targets = torch.cat([y, y, y], 0)
        likelihood = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / batch
        precision = torch.exp(-log_variances)
        own = (log_variances + centers * centers * precision).sum(1)
        densities = -0.5 * ((fresh * fresh) @ precision.t() - 2 * fresh @ (centers * precision).t() + own)
        prior = torch.logsumexp(densities + (y - 1) * 1e6, 1, keepdim=True) - torch.log(counts)
        posterior = -0.5 * (log_variance + samples[2] ** 2).sum(1, keepdim=True)
        divergence = (posterior - prior).mean()
        anchors = torch.cat([logits[:batch], logits[2 * batch :]], 0)
        share = torch.cat([y, y], 0) / torch.cat([counts, counts], 0)
        contrast = -(share * F.log_softmax(anchors, 1)).sum(1).mean()
        return 0.5 * likelihood + 6 * divergence + contrast

    return loss, torch.optim.Adam(parameters, lr=1e-3, weight_decay=1e-5)


def transformer():
    batch, length, width, heads = 256, 32, 128, 4
    x = wave([batch, length, width], 1, 1)

    def norm():
        return make([width], 1), make([width], 0)

    blocks = []
    for _ in range(2):
        attention = [layer(width, width) for _ in range(4)]
        first = norm()
        blocks.append((attention, first, layer(width, 4 * width), layer(4 * width, width), norm()))
    last = layer(width, width)

    def in_heads(h):
        return h.reshape(batch, length, heads, width // heads).transpose(1, 2)

    def loss():
        h = x
        for (query, key, value, out), first, up, down, second in blocks:
            q, k, v = [in_heads(apply(h, weights)) for weights in (query, key, value)]
            attended = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(width // heads), -1) @ v
            attended = attended.transpose(1, 2).reshape(batch, length, width)
            h = F.layer_norm(h + apply(attended, out), [width], *first)
            h = F.layer_norm(h + apply(F.gelu(apply(h, up)), down), [width], *second)
        return ((apply(h.mean(1), last) - 1) ** 2).mean()

    return loss, torch.optim.Adam(parameters, lr=1e-3)


loss, optimiser = {"gmvae": gmvae, "transformer": transformer}[name]()
print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    losses, seconds = [], []
    for _ in range(int(line)):
        start = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimiser.step()
        losses.append(value.item())
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"losses": losses, "seconds": seconds}), flush=True)
