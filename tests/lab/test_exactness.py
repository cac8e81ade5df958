"""The table of what is exact and what is not."""

from exactness import markdown, markup

from attnlab.lab.formulas.formula import formulas


def test_every_function_has_a_row_with_its_status():
    page = markdown(formulas().values())
    assert page.startswith(f"{len(formulas())} functions: ")
    rows = [line for line in page.splitlines() if line.startswith("| {py:func}")]
    assert len(rows) == len(formulas())
    for row, formula in zip(rows, formulas().values(), strict=True):
        assert f"**{formula.status}**" in row
        # three cells: a bar inside one would make a fourth
        assert row.replace(r"\|", "").count("|") == 4, row


def test_formulas_keep_their_latex_and_bars_are_not_cells():
    assert markup(r":math:`|x|_F` and a|b_c") == r"$\vert x\vert _F$ and a\|b\_c"
