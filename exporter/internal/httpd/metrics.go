package httpd

import (
	"compress/gzip"
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"
)

// Exposer writes families of metrics in the format of a scrape, but for the end that some formats have; a
// promsink.Sink is one.
type Exposer interface {
	Expose(to io.Writer, format expfmt.Format) error
}

// metrics answers a scrape, in the format and the coding that it asks for.
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
		defer zip.Close() // what it writes to cannot fail, see answers
		to = zip
	}
	if err := s.expose(to, format); err != nil {
		w.WriteHeader(http.StatusInternalServerError) // so that nobody takes the part for the whole
		s.Log.Error("A scrape is not whole", "err", err)
	}
}

// expose writes the families of the registry, and those of the sink. One that cannot be shown must not hide others.
func (s *server) expose(to io.Writer, format expfmt.Format) error {
	own, err := s.Registry.Gather()
	if err != nil {
		s.Log.Error("Metrics of this process are not whole", "err", err)
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
