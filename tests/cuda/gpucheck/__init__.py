"""The parts of check_gpu.py. From what to how: checklist.py has the checks in their order, sitting.py goes through them,
numerics.py, steps.py and links.py are what they do; plans.py makes plans, commands.py runs programs, state.py, archive.py
and desk.py keep what came of them, summary.py tells it on a page."""
