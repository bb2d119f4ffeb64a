package output

import (
	"slices"

	"github.com/charmbracelet/x/ansi"

	"switchyard/drawing/words"
)

const (
	// columnGap is the space between two columns of a table.
	columnGap = 2
	// goodCell and goodText are the widths to which cells, and cells of the last column, are shortened before a column
	// is dropped. leastCell and leastText apply once only essential columns remain.
	goodCell, goodText   = 20, 24
	leastCell, leastText = 8, 10
)

// Fit fits the rows of a table, header first, into lines of at most width cells. It first drops columns, empty ones and
// then those before the last, and shortens long cells. Keeping the first keep columns is more important than keeping
// cells whole. A width of 0 means no limit.
func Fit(rows [][]string, width, keep int) [][]string {
	if width <= 0 || len(rows) == 0 {
		return rows
	}
	columns := make([]int, len(rows[0]))
	for i := range columns {
		columns[i] = i
	}
	widths := naturalWidths(rows)
	for i := len(columns) - 1; i > 0 && lineWidth(columns, widths) > width; i-- {
		if isEmpty(rows[1:], columns[i]) {
			columns = slices.Delete(columns, i, i+1)
		}
	}
	dropWhileWider := func(cell, text, most int) {
		for len(columns) > most && lineWidth(columns, shortened(columns, widths, cell, text)) > width {
			columns = slices.Delete(columns, len(columns)-2, len(columns)-1)
		}
	}
	cell, text := goodCell, goodText
	dropWhileWider(cell, text, keep+1)
	if lineWidth(columns, shortened(columns, widths, cell, text)) > width {
		cell, text = leastCell, leastText
		dropWhileWider(cell, text, 2)
	}
	least := shortened(columns, widths, cell, text)
	for lineWidth(columns, widths) > width {
		widest := -1
		for _, c := range columns {
			if widths[c] > least[c] && (widest < 0 || widths[c] >= widths[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	fitted := make([][]string, len(rows))
	for i, row := range rows {
		for k, c := range columns {
			if k == len(columns)-1 {
				fitted[i] = append(fitted[i], ansi.Truncate(row[c], widths[c], "…"))
			} else {
				fitted[i] = append(fitted[i], words.Shorten(row[c], widths[c]))
			}
		}
	}
	return fitted
}

// naturalWidths returns the unlimited width of each column.
func naturalWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for c, value := range row {
			widths[c] = max(widths[c], ansi.StringWidth(value))
		}
	}
	return widths
}

// shortened returns widths with an upper bound: text for the last of the columns and cell for the others.
func shortened(columns, widths []int, cell, text int) []int {
	least := slices.Clone(widths)
	for k, c := range columns {
		if k == len(columns)-1 {
			cell = text
		}
		least[c] = min(least[c], cell)
	}
	return least
}

// lineWidth returns the width of a line with the given columns.
func lineWidth(columns, widths []int) int {
	total := columnGap * (len(columns) - 1)
	for _, c := range columns {
		total += widths[c]
	}
	return total
}

// isEmpty reports whether a column is empty in every row.
func isEmpty(rows [][]string, column int) bool {
	return !slices.ContainsFunc(rows, func(row []string) bool { return row[column] != "" })
}
