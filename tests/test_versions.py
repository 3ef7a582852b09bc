"""The last cell of each notebook."""

from importlib.metadata import version

from saber.versions import versions


def test_versions_name_the_running_packages():
    table = versions().set_index("package")["version"]
    assert table["numpy"] == version("numpy") and table["saber"] and table["python"].count(".") == 2
