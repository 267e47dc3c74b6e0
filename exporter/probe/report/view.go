package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"oneway.example/exporter/core/unit"
)

// View is what a page shows of a report besides its header. Its size is limited.
type View struct {
	// Notes are sentences about the validity of the results.
	Notes few[string] `json:"notes,omitempty"`
	// Remedy is what a person can do about a run that did not complete.
	Remedy string `json:"remedy,omitempty"`
	// Evidence is what the results are based on, Settings what was configured.
	Evidence few[Line]    `json:"evidence,omitempty"`
	Settings few[Line]    `json:"settings,omitempty"`
	Drawings few[Drawing] `json:"drawings,omitempty"`
}

// Viewed is a body with a View, which stands before it in the report.
type Viewed interface{ View() View }

// Drawing is a chart of some series. The kind of the report decides its content; any reader can draw it.
type Drawing struct {
	Title string `json:"title"`
	// Direction is forward or reverse; empty: both.
	Direction string      `json:"direction,omitempty"`
	X         Axis        `json:"x_axis"`
	Y         Axis        `json:"y_axis"`
	Series    few[Series] `json:"series"`
}

// Toward sets the direction of drawings.
func Toward(direction string, drawings ...Drawing) []Drawing {
	for i := range drawings {
		drawings[i].Direction = direction
	}
	return drawings
}

// Axis is what an axis shows.
type Axis struct {
	Name string    `json:"name"`
	Unit unit.Unit `json:"unit"`
	// Log: the axis is logarithmic, and values up to 0 are not drawn.
	Log bool `json:"logarithmic,omitempty"`
}

// Form is how the points of a series are drawn.
type Form string

// The forms.
const (
	AsLine   Form = "line"
	AsSteps  Form = "steps"  // a value holds until the next point
	AsPoints Form = "points" // a line with its points
	AsMarks  Form = "marks"  // events, without a line
)

// Series is the points of one quantity, as many X as Y.
type Series struct {
	Name string `json:"name"`
	Form Form   `json:"form"`
	X    values `json:"x"`
	Y    values `json:"y"`
}

// Add adds a point.
func (s *Series) Add(x, y float64) { s.X, s.Y = append(s.X, x), append(s.Y, y) }

// values have 6 digits in JSON, enough for a drawing.
type values []float64

// MarshalJSON encodes an array of numbers; all are finite.
func (v values) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 8*len(v)+2), '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, x, 'g', 6, 64)
	}
	return append(b, ']'), nil
}

var errPoints = fmt.Errorf("decode report: want a series of at most %d points", maxPoints)

// UnmarshalJSON decodes an array of at most maxPoints numbers.
func (v *values) UnmarshalJSON(b []byte) error {
	if bytes.Count(b, []byte(",")) >= maxPoints {
		return errPoints
	}
	return json.Unmarshal(b, (*[]float64)(v))
}

// Limits of a View.
const (
	maxItems  = 64      // notes, drawings, series of a drawing
	maxPoints = 400     // of a series
	maxAll    = 100_000 // points of all drawings
	// maxViewBytes exceeds a View within these limits.
	maxViewBytes = 4 << 20
)

// few is a list that is decoded up to maxItems elements, so that a damaged file uses little memory.
type few[T any] []T

var errItems = fmt.Errorf("decode report: want a list of at most %d elements", maxItems)

// UnmarshalJSON decodes an array.
func (f *few[T]) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	switch t, err := d.Token(); {
	case err != nil || t == nil: // null
		return err
	case t != json.Delim('['):
		return errItems
	}
	for d.More() {
		if len(*f) == maxItems {
			return errItems
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*f = append(*f, one)
	}
	return nil
}

// bounded returns a copy of v within the limits: further notes, drawings and series are left out.
func (v View) bounded() (kept View) {
	for _, note := range v.Notes[:min(len(v.Notes), maxItems)] {
		kept.Notes = append(kept.Notes, truncate(note))
	}
	kept.Remedy, kept.Evidence, kept.Settings = truncate(v.Remedy), lines(v.Evidence, maxItems), lines(v.Settings, maxItems)
	points := 0
	for _, d := range v.Drawings[:min(len(v.Drawings), maxItems)] {
		d.Title, d.Direction = truncate(d.Title), truncate(d.Direction)
		d.X.Name, d.Y.Name, d.X.Unit, d.Y.Unit = truncate(d.X.Name), truncate(d.Y.Name), unit.Unit(truncate(string(d.X.Unit))), unit.Unit(truncate(string(d.Y.Unit)))
		all := d.Series[:min(len(d.Series), maxItems)]
		d.Series = nil
		for _, s := range all {
			s = s.reduced(maxPoints)
			d.Series = append(d.Series, s)
			points += len(s.X)
		}
		if points > maxAll {
			break
		}
		kept.Drawings = append(kept.Drawings, d)
	}
	return kept
}

// Distribution is the share of values up to each of them: all of them, of which some may be unknown, so that the share stays
// below 1.
func Distribution(name string, values []float64, all int) Series {
	s := Series{Name: name, Form: AsSteps}
	for i, v := range slices.Sorted(slices.Values(values)) {
		if i == 0 {
			s.Add(v, 0)
		}
		s.Add(v, float64(i+1)/float64(all))
	}
	return s
}

// viewOf returns that of a body; nil: it has none.
func viewOf(body any) *View {
	v, ok := body.(Viewed)
	if !ok {
		return nil
	}
	view := v.View().bounded()
	return &view
}

// View reads a report's header and view. An ID that is invalid or not stored gives an error that wraps fs.ErrNotExist. If
// only the view is damaged, the header is returned with the error.
func (s *Store) View(id string) (h Header, v View, err error) {
	f, err := s.Open(id)
	if err != nil {
		return h, v, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	zipped, err := gzip.NewReader(f)
	if err == nil {
		h, v, err = decodeView(zipped, id)
	}
	if err != nil {
		err = fmt.Errorf("report: decode run %s: %w", id, err)
	}
	return h, v, err
}

// decodeView reads the beginning of a decompressed report.
func decodeView(from io.Reader, id string) (h Header, v View, err error) {
	limited := &io.LimitedReader{R: from, N: maxHeaderBytes}
	d := json.NewDecoder(limited)
	h, next, err := headerFrom(d, id)
	switch {
	case err != nil:
		return Header{}, v, err
	case next == nil:
		return h, v, io.ErrUnexpectedEOF
	}
	limited.N += maxViewBytes
	if next == "view" {
		err = d.Decode(&v)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return h, View{}, err
	}
	return h, v.bounded(), nil
}
