package report

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"oneway.example/exporter/core/document"
)

// maxHeaderBytes is the most bytes of a decompressed report that are read to find its header.
const maxHeaderBytes = 256 << 10

// list reads the headers of a directory's reports, newest first. It reads at most o.MaxRuns of
// them; of the others it returns the ID only. It removes files that a crash left incomplete.
func list(o Options) (index []Header, total int64, err error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, 0, fmt.Errorf("report: %w", err)
	}
	err = withRoot(o.Dir, func(r *os.Root) error {
		entries, err := fs.ReadDir(r.FS(), ".")
		if err != nil {
			return err
		}
		slices.Reverse(entries) // names sort by time; newest first
		for _, e := range entries {
			id, ours := strings.CutSuffix(e.Name(), suffix)
			ours = ours && validID.MatchString(id)
			info, err := e.Info()
			switch {
			case err != nil || !info.Mode().IsRegular():
			case strings.HasPrefix(e.Name(), temporary), ours && info.Size() == 0: // incomplete after a crash
				_ = r.Remove(e.Name()) // on an error it is not listed, and the next start retries
			case ours:
				h := Header{ID: id}
				if len(index) < o.MaxRuns { // the caller removes the others
					h = readHeader(o, r, id)
				}
				h = h.kept(info.Size())
				index = append(index, h)
				total += h.FileBytes
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("report: %w", err)
	}
	return index, total, nil
}

// readHeader reads a report's header. An unreadable report is listed by its ID, with the result
// Unreadable, and is removed by age like any other.
func readHeader(o Options, r *os.Root, id string) Header {
	h, err := decodeFile(r, id)
	if err != nil {
		o.Log.Warn("Report of a run cannot be read", "dir", o.Dir, "id", id, "err", err)
		return Header{ID: id, Result: Unreadable}
	}
	return h
}

func decodeFile(r *os.Root, id string) (Header, error) {
	f, err := openRegular(r, id+suffix)
	if err != nil {
		return Header{}, err
	}
	defer f.Close()
	return decodeHeader(f, id)
}

var errHeader = errors.New("decode report: the first fields must be those of a document, then the header of this run")

// decodeHeader reads the beginning of a report.
func decodeHeader(from io.Reader, id string) (Header, error) {
	zipped, err := gzip.NewReader(from)
	if err != nil {
		return Header{}, err
	}
	h, _, err := headerFrom(json.NewDecoder(io.LimitReader(zipped, maxHeaderBytes)), id)
	return h, err
}

// headerFrom reads the header and the summary, and leaves the decoder behind the next token, which it returns: nil if the file ends
// there.
func headerFrom(d *json.Decoder, id string) (h Header, next json.Token, err error) {
	if open, err := d.Token(); err != nil {
		return h, nil, err
	} else if open != json.Delim('{') {
		return h, nil, errHeader
	}
	for next != "header" {
		if next, err = d.Token(); err != nil {
			return h, nil, err
		}
		switch next {
		case "header":
		case "schema", "time", "host", "version":
			var text string
			if err := d.Decode(&text); err != nil {
				return h, nil, err
			}
		default:
			return h, nil, errHeader
		}
	}
	if err := d.Decode(&h); err != nil {
		return Header{}, nil, err
	}
	if h.ID != id {
		return Header{}, nil, errHeader
	}
	if next, err = d.Token(); err == nil && next == "summary" {
		if err = d.Decode(&h.Summary); err == nil {
			next, err = d.Token()
		}
	}
	if err != nil { // the file is cut behind the header
		next = nil
	}
	return h.bounded(), next, nil
}

// openRegular opens a regular file. It does not block on a named pipe.
func openRegular(r *os.Root, name string) (*os.File, error) {
	f, err := r.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		_ = f.Close() // err is returned
		return nil, err
	}
	return f, nil
}

// file writes a report's file and returns its size in bytes; 0 on an error.
func file(o Options, h Header, body any) (size int64, err error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return 0, fmt.Errorf("report: %w", err)
	}
	err = withRoot(o.Dir, func(r *os.Root) (err error) {
		name := temporary + h.ID
		defer func() {
			if err != nil {
				_ = r.Remove(name) // err is returned
			}
		}()
		if size, err = encode(r, name, o.MaxBytes, h, body); err != nil {
			return err
		}
		return r.Rename(name, h.ID+suffix)
	})
	if err != nil {
		return 0, fmt.Errorf("report: run %s: %w", h.ID, err)
	}
	return size, nil
}

// Document is a report.
type Document struct {
	document.Envelope
	// Header is what the list of runs has.
	Header Header `json:"header"`
	// Summary has the main results in words, for display.
	Summary []Line `json:"summary,omitempty"`
	// View is what the report's page draws.
	View *View `json:"view,omitempty"`
	// Body has the results: those of `oneway test --json`, or of an incident.
	Body any `json:"body"`
}

// encode writes a new file of at most limit bytes and syncs it to disk.
func encode(r *os.Root, name string, limit int64, h Header, body any) (size int64, err error) {
	f, err := r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return 0, err
	}
	out := &limited{w: f, left: limit}
	zipped := gzip.NewWriter(out)
	err = json.NewEncoder(zipped).Encode(Document{document.New(document.Report), h, h.Summary, viewOf(body), body})
	err = errors.Join(err, zipped.Close(), f.Sync(), f.Close())
	return limit - out.left, err
}

// limited is a writer that fails after left bytes.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(b []byte) (int, error) {
	if int64(len(b)) > l.left {
		return 0, errTooLarge
	}
	n, err := l.w.Write(b)
	l.left -= int64(n)
	return n, err
}

// withRoot opens a directory for f. Neither a name nor a symbolic link leads out of it (os.Root).
func withRoot(dir string, f func(*os.Root) error) error {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // a directory has no unwritten data
	return f(r)
}
