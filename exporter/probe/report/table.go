package report

// Table is a table of results as text.
type Table struct {
	// Heading is above it; empty: it has none.
	Heading string
	// Columns are the names of the columns; empty: the first cell of each row is the name of the row.
	Columns []string
	Rows    [][]string
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }
