"""Docstrings and captions as words: restructured text, LaTeX and names of letters as signs of a terminal or a page."""

from __future__ import annotations

import re
import unicodedata

GREEK_LETTERS = """alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ kappa κ lambda λ mu μ nu ν xi ξ pi π
    rho ρ sigma σ tau τ phi φ varphi φ chi χ psi ψ omega ω Delta Δ Phi Φ Psi Ψ Theta Θ Sigma Σ
    Gamma Γ Lambda Λ Omega Ω Upsilon Υ ell ℓ"""
SIGNS = "sum Σ int ∫ iint ∬ prod Π sqrt √ infty ∞ cdot · langle ⟨ rangle ⟩ partial ∂ top T"
RELATIONS = "sim ~ le ≤ ge ≥ to → leftarrow ← approx ≈ simeq ≃ propto ∝ in ∈ vee ∨ otimes ⊗"


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


GREEK = _pairs(GREEK_LETTERS)
SPACED = {name: f" {sign} " for name, sign in _pairs(RELATIONS).items()}
WORDS = {**GREEK, **_pairs(SIGNS), **SPACED, "quad": "  ", "qquad": "   "}
# An argument of a command: in braces, with one level of braces inside, or one letter or command.
ARGUMENT = r"\s*(?:\{((?:[^{}]|\{[^{}]*\})*)\}|(\\[A-Za-z]+|\w))"
POWERS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304", "dot": "\u0307"}


def plain(text: str) -> str:
    r"""A docstring without its markup.

    >>> plain(r"Risk :math:`\mathbb{E}(y - \hat y)^2` of :func:`~attnlab.slr.risk`, ``lam`` fixed")
    'Risk E(y - ŷ)^2 of risk, lam fixed'
    """
    text = re.sub(r":math:`([^`]*)`", lambda m: letters(m[1]), text)
    text = re.sub(r":[a-z]+:`~?([^`]*)`", lambda m: m[1].split(".")[-1], text)
    text = re.sub(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*)?)*)", lambda m: m[1] + "   " + letters(m[2]), text, flags=re.M)
    # outside formulas a backslash keeps restructured text from reading |x| as a substitution
    return text.replace("``", "").replace(r"\|", "|")


def sentence(text: str) -> str:
    r"""A caption or a claim with Greek letters, powers and arrows in place of their names and of LaTeX.

    >>> sentence(r"at alpha = (2 rho - rho^2)/(T^2 + T - 2) it is zero, as $2\rho - n \ge d^{12}/4$ says, then n^-2")
    'At α = (2 ρ - ρ²)/(T² + T - 2) it is zero, as 2ρ - n ≥ d¹²/4 says, then n⁻²'
    >>> sentence("mha.learn finds the heads")
    'mha.learn finds the heads'
    """
    text = re.sub(r"\$([^$]*)\$", lambda m: re.sub(r"(?<=\S)([-+=<>]) ", r" \1 ", letters(m[1])), text)
    text = re.sub(rf"(?<![\w.])({'|'.join(GREEK)})(?!\w|\.\w)", lambda m: GREEK[m[1]], text)
    text = re.sub(r"\^(?:\{(-?\d+)\}|(-?\d+))", lambda m: (m[1] or m[2]).translate(POWERS), text)
    text = text.replace("->", "→").replace("<=", "≤").replace(">=", "≥")
    return text[:1].upper() + text[1:] if re.match(r"a |[a-z-]{2,}[ ,]", text) else text


def letters(formula: str) -> str:
    """LaTeX as a reader would type it; what has no letter keeps its name."""
    formula = re.sub(r"\\\\|\\(?=\n)", "", formula)
    formula = re.sub(r"\\(?:mathbb|mathrm|mathcal|mathsf|text|operatorname)(?:\{([^{}]*)\}| (\w))", r"\1\2", formula)
    formula = re.sub(rf"\\(hat|tilde|bar|dot){ARGUMENT}", _accented, formula)
    while (changed := re.sub(rf"\\[td]?frac{ARGUMENT}{ARGUMENT}", _divided, formula)) != formula:
        formula = changed  # one inside another
    formula = re.sub(r"\\(?:left|right|[Bb]igg?)(?![a-z])\.?", "", formula)
    formula = re.sub(r"\\[,;:! ]", " ", formula).replace(r"\|", "|").replace(r"\{", "{").replace(r"\}", "}")
    formula = re.sub(r"\\([A-Za-z]+) ?", lambda m: WORDS.get(m[1], m[1] + " "), formula)
    return re.sub(r"(?<=\S)  +(?=\S)", " ", formula)


def _accented(found: re.Match[str]) -> str:
    letter = (found[2] or found[3]).removeprefix("\\")
    letter = GREEK.get(letter, letter)
    # one sign instead of a letter and a combining accent, where Unicode has it
    return unicodedata.normalize("NFC", letter[0] + ACCENTS[found[1]]) + letter[1:]


def _divided(found: re.Match[str]) -> str:
    """A fraction on one line; one letter needs no brackets."""
    parts = (found[1] or found[2], found[3] or found[4])
    return "/".join(part if re.fullmatch(r"\\?\w+", part) else f"({part})" for part in parts)
