package oneway

import (
	"bytes"
	"testing"

	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"
)

// FuzzReply: whatever an agent replies, it is read or refused, and its points can be passed on.
func FuzzReply(f *testing.F) {
	f.Add(true, []byte("\x80\x80\x80\x80\x80\x80\x10abc"))
	f.Add(false, []byte("oneway_clock_error_bound_seconds 0.25\noneway_delay_seconds_bucket{path=\"a\",le=\"+Inf\"} 2\n"))
	f.Add(false, []byte("# TYPE oneway_delay_seconds histogram\noneway_delay_seconds_bucket{path=\"a\",probe=\"b\",direction=\"forward\",le=\"+Inf\"} 2\n"))
	f.Fuzz(func(t *testing.T, binary bool, reply []byte) {
		format := expfmt.NewFormat(expfmt.TypeTextPlain)
		if binary {
			format = expfmt.NewFormat(expfmt.TypeProtoDelim)
		}
		scraped, err := decode(bytes.NewReader(reply), format)
		if err != nil {
			return
		}
		var encoder point.Encoder
		_ = series.New(families.All()).Convert(scraped, instant.Now(), func(p *point.Point) {
			if _, err := encoder.Append(nil, p); err != nil {
				t.Error(err)
			}
		})
	})
}
