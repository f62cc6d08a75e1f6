"""nnsight, without what it does to every Python object.

Invariant: whoever needs nnsight takes it from here.
"""

from types import ModuleType


def import_nnsight() -> ModuleType:
    """The package; imported late, since it takes seconds."""
    import nnsight
    from nnsight._c import unmount

    # nnsight 0.8.1 gives every Python object an attribute `save`, on which anyio's classes, and with them the
    # tool server, fail ("Attribute 'save' is missing its type annotation").
    if unmount is not None and hasattr(object, "save"):
        unmount("save")
    package: ModuleType = nnsight
    return package
