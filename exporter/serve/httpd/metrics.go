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

// metrics serves a scrape in the requested format and encoding: the families of the registry and those of the sink.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	s.scrape(w, r, func(to io.Writer, format expfmt.Format, e expfmt.Encoder) error {
		// An error of one family must not hide the others.
		own, err := s.Registry.Gather()
		if err != nil {
			s.Log.Error("Metrics of this process are incomplete", "err", err)
		}
		for _, f := range own {
			if err := e.Encode(f); err != nil {
				return err
			}
		}
		if s.Sink == nil {
			return nil
		}
		return s.Sink.Expose(to, format)
	})
}

// scrape replies with what expose writes, in the requested format and encoding.
func (s *server) scrape(w http.ResponseWriter, r *http.Request, expose func(io.Writer, expfmt.Format, expfmt.Encoder) error) {
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
	e := expfmt.NewEncoder(to, format)
	err := expose(to, format, e)
	if end, ok := e.(expfmt.Closer); ok && err == nil {
		err = end.Close()
	}
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError) // some families are missing
		s.Log.Error("A scrape is incomplete", "err", err)
	}
}
