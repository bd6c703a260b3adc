"""A step of two layers, for tests of `planc torch` and of the manual."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
runs = []


def example():
    return torch.randn(16, 32), torch.randint(0, 8, (16,))


def step(x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def raises(x, y):
    if len(model(x)) == len(y):
        raise ValueError("no data left")


def calls_nothing(x, y):
    return 1


def changes(x, y):
    runs.append(x)
    loss = model(x).sum()
    if len(runs) % 2 == 0:
        loss = loss * 2
    loss.backward()


def writes_its_argument(x, y):
    x.add_(1)
    model(x).sum().backward()


def starts_a_thread(x, y):
    import threading

    thread = threading.Thread(target=lambda: model(x))
    thread.start()
    thread.join()


def has_a_closure(x, y):
    def closure():
        loss = model(x).sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def changes_its_shapes(x, y):
    runs.append(x)
    model(x[len(runs) % 2:]).sum().backward()


def example_that_raises():
    return torch.zeros(2) @ torch.zeros(3)


def gives_losses(x, y):
    yield step(x, y)


async def is_awaited(x, y):
    return step(x, y)


def only_reads(x, y):
    return model[0].weight.detach().tolist()


def zeroes_in_place(x, y):
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


def zeroes_those_of_a_module(x, y):
    model.zero_grad(set_to_none=False)
    torch.nn.functional.cross_entropy(model(x), y).backward()


def example_of(batch):
    return torch.randn(batch, 32), torch.randint(0, 8, (batch,))


not_a_function = 3
