"""What pyproject.toml cannot say: the wheel holds a library for this platform and works with any Python 3."""

import os

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=os.environ["PELLUCID_VERSION"], distclass=WithLibrary, cmdclass={"bdist_wheel": PlatformWheel})
