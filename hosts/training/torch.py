"""Makes the backend's name known when a script runs `import agglab.hosts.training.torch`. Scripts
need this import where PyTorch does not call entry points: with TORCH_DEVICE_BACKEND_AUTOLOAD=0, and
outside the testbed with PyTorch before 2.5."""

from agglab.hosts.training.autoload import register

register()
