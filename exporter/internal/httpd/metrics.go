package httpd

import (
	"compress/gzip"
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"
)

// Exposer writes metric families in the format of a scrape, without the end marker that some formats have; a promsink.Sink
// is one.
type Exposer interface {
	Expose(to io.Writer, format expfmt.Format) error
}

// metrics serves a scrape in the requested format and encoding.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept-Encoding")
	to := io.Writer(w)
	if takesGzip(r.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		zip := s.zips.Get().(*gzip.Writer)
		defer s.zips.Put(zip)
		zip.Reset(w)
		defer func() { _ = zip.Close() }() // writes cannot fail, see pages
		to = zip
	}
	if err := s.expose(to, format); err != nil {
		w.WriteHeader(http.StatusInternalServerError) // some families are missing
		s.Log.Error("A scrape is incomplete", "err", err)
	}
}

// expose writes the families of the registry and those of the sink. An error of one family must not hide the others.
func (s *server) expose(to io.Writer, format expfmt.Format) error {
	own, err := s.Registry.Gather()
	if err != nil {
		s.Log.Error("Metrics of this process are incomplete", "err", err)
	}
	e := expfmt.NewEncoder(to, format)
	for _, f := range own {
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	if s.Sink != nil {
		if err := s.Sink.Expose(to, format); err != nil {
			return err
		}
	}
	if end, ok := e.(expfmt.Closer); ok {
		return end.Close()
	}
	return nil
}
