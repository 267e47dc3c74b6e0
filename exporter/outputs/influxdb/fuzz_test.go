package influxdb

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzReply: whatever a store replies, its text is short and in one line, its wait is bounded, and a partial write has refused points.
func FuzzReply(f *testing.F) {
	f.Add(400, "", `{"error":"partial write: points beyond retention policy dropped=5"}`)
	f.Add(422, "", `{"code":"unprocessable entity","message":"failure writing points: partial write: unable to parse 'x': missing fields dropped=99999999999999999999"}`)
	f.Add(400, "", `{"error":"partial write of line protocol occurred","data":[{"original_line":"x","line_number":2,"error_message":"no fields"}]}`)
	f.Add(503, "18446744073709551615", "<html>")
	f.Add(429, "Fri, 31 Dec 9999 23:59:59 GMT", strings.Repeat("\xff\n", 1000))
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		r := classify(status, http.Header{"Retry-After": {after}}, []byte(body), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if len(r.reason) > maxReasonBytes+100 || strings.ContainsAny(r.reason, "\r\n") || !utf8.ValidString(r.reason) {
			t.Errorf("reason %q", r.reason)
		}
		if r.after < 0 || r.after > maxRetryAfter {
			t.Errorf("wait %v", r.after)
		}
		if r.result == "" || (r.result == resultPartial) != (r.refused > 0) {
			t.Errorf("result %q with %d refused points", r.result, r.refused)
		}
	})
}
