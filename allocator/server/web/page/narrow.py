"""Tables on a narrow screen: there each row is a paragraph, and each cell says its column's name.

A style sheet can only show what stands at the cell itself.
"""

import re

_TABLE = re.compile(r"(<thead><tr>(.*?)</tr></thead>\s*<tbody>)(.*?)(?=</tbody>)", re.DOTALL)
_HEAD = re.compile(r"<th\b([^>]*)>(.*?)</th>", re.DOTALL)
_SPAN = re.compile(r'colspan="(\d+)"')
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<t[dh]\b(?![^>]*colspan)")


def labelled(page: str) -> str:
    """Write beside each cell of a page's tables what its column is called.

    >>> labelled("<thead><tr><th>role</th></tr></thead><tbody><tr><td>eng</td></tr></tbody>")
    '<thead><tr><th>role</th></tr></thead><tbody><tr><td data-column="role">eng</td></tr></tbody>'
    """
    return _TABLE.sub(_label_table, page)


def _label_table(table: re.Match[str]) -> str:
    names: list[str] = []
    for attributes, text in _HEAD.findall(table[2]):
        span = _SPAN.search(attributes)
        # Of several columns with one name the first bears it.
        names += [text.strip().replace('"', "&#34;"), *[""] * (int(span[1]) - 1 if span else 0)]

    def label_row(row: re.Match[str]) -> str:
        left = iter(names)

        def label(cell: re.Match[str]) -> str:
            name = next(left, "")
            return f'{cell[0]} data-column="{name}"' if name and cell[0] == "<td" else cell[0]

        return _CELL.sub(label, row[0])

    return table[1] + _ROW.sub(label_row, table[3])
