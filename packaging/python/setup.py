"""What pyproject.toml cannot say: the wheel holds a library and a program for this platform and works with any Python 3.

PELLUCID_VERSION: the version. PELLUCID_GLIBC: the glibc that they need, as 2.34 (PEP 600).
"""

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
        machine = super().get_tag()[2].rsplit("linux_", 1)[-1]
        glibc = os.environ["PELLUCID_GLIBC"].replace(".", "_")
        return "py3", "none", f"manylinux_{glibc}_{machine}"


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=os.environ["PELLUCID_VERSION"], distclass=WithLibrary, cmdclass={"bdist_wheel": PlatformWheel})
