"""The model as data and what checks it import nothing of the fit."""

from pathlib import Path

from importlinter.cli import lint_imports

SETTINGS = Path(__file__).parent.parent / "pyproject.toml"


def test_the_contracts_are_kept(capsys):
    assert lint_imports(str(SETTINGS), no_cache=True) == 0, capsys.readouterr().out


def test_a_module_of_the_fit_would_break_them(tmp_path, capsys):
    changed = tmp_path / "pyproject.toml"
    text = SETTINGS.read_text().replace(
        '    "tcboost.verify",\n', '    "tcboost.classifier",\n'
    )
    changed.write_text(text)
    assert lint_imports(str(changed), no_cache=True) == 1
    assert "tcboost.classifier is not allowed to import" in capsys.readouterr().out
