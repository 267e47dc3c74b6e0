package influxdb

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Results of a request: values of the label result of oneway_output_requests_total.
const (
	resultWritten      = "written"
	resultPartial      = "partial"
	resultRejected     = "rejected"
	resultTooLarge     = "too_large"
	resultRateLimited  = "rate_limited"
	resultUnauthorized = "unauthorized"
	resultNotFound     = "not_found"
	resultServerError  = "server_error"
	resultUnreachable  = "unreachable"
)

// reply is what the store replied to a request.
type reply struct {
	result string
	// refused points of a partial write; at least one.
	refused int
	// reason is the store's message; empty: all points were written.
	reason string
	// after is when the store wants the next request; 0: it has not said.
	after time.Duration
}

// final reports that the points of the request are not sent again.
func (r *reply) final() bool {
	return r.result == resultWritten || r.result == resultPartial || r.result == resultRejected
}

const (
	// maxReplyBytes of a reply are read.
	maxReplyBytes = 256 << 10
	// maxReasonBytes of a message are kept.
	maxReasonBytes = 300
	// maxRetryAfter bounds a store's Retry-After, so that a wrong one does not stop the output.
	maxRetryAfter = 5 * time.Minute
)

// classify reads a reply. InfluxDB 1.8 has "error" in its body, 2 "message", 3 "error" with "data", a list of refused lines. A refusal
// without these, a page, a text or nothing, is of a proxy, a firewall or a server that expects TLS: it refuses the connection and not
// the points. A success (204, and 200 of other stores) has no page and no error either: a portal's or a web server's page took no point.
func classify(status int, header http.Header, body []byte, now time.Time) reply {
	var v struct {
		Error   string          `json:"error"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(body, &v) // another body is text
	message := v.Error + v.Message
	reason := message
	if message == "" {
		reason = strings.TrimSpace(string(body))
	}
	refused := countRefused(reason, v.Data)
	if line := firstRefused(v.Data); line != "" {
		reason += ": " + line
	}
	r := reply{reason: short(status, reason)}
	switch {
	case status == http.StatusNoContent, status == http.StatusOK && message == "" && (len(body) == 0 || json.Valid(body)):
		r = reply{result: resultWritten}
	case (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && refused > 0:
		r.result, r.refused = resultPartial, refused
	case (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && message != "":
		r.result = resultRejected
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		r.result = resultUnauthorized
	case status == http.StatusNotFound:
		r.result = resultNotFound
		if message == "" {
			r.reason += ": no write API of this version at this address; check url and version"
		}
	case status == http.StatusRequestEntityTooLarge:
		r.result = resultTooLarge
	default:
		r.result = resultServerError
		if message == "" && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
			r.reason += " (not a message of InfluxDB: check url; a proxy or a firewall may reply, or the port may expect https)"
		}
		r.after = retryAfter(header.Get("Retry-After"), now)
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && r.after > 0 {
			r.result = resultRateLimited
		}
	}
	return r
}

// short is a message for the status page and the log.
func short(status int, reason string) string {
	reason = clip(reason)
	text := fmt.Sprintf("status %d %s", status, http.StatusText(status))
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// clip is a text in one line of at most maxReasonBytes.
func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > maxReasonBytes {
		text = strings.ToValidUTF8(text[:maxReasonBytes], "") + "..."
	}
	return text
}

// droppedRE matches the end of a message of InfluxDB 1.8 and 2 about a partial write.
var droppedRE = regexp.MustCompile(`dropped=(\d+)`)

// countRefused is the number of refused points of a partial write; 0: it was none. InfluxDB 1.8
// counts the points of one reason only, and not the lines that it cannot parse.
func countRefused(reason string, data json.RawMessage) int {
	if !strings.Contains(reason, "partial write") {
		return 0
	}
	var lines []json.RawMessage
	if json.Unmarshal(data, &lines) == nil && len(lines) > 0 {
		return len(lines)
	}
	n := strings.Count(reason, "unable to parse")
	if m := droppedRE.FindStringSubmatch(reason); m != nil {
		more, _ := strconv.Atoi(m[1]) // too many digits: the largest number
		n += more
	}
	return max(n, 1)
}

// firstRefused is the message about the first refused line in a reply of InfluxDB 3.
func firstRefused(data json.RawMessage) string {
	var lines []struct {
		Line    int    `json:"line_number"`
		Message string `json:"error_message"`
	}
	if json.Unmarshal(data, &lines) != nil || len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: %s", lines[0].Line, lines[0].Message)
}

// retryAfter reads Retry-After (RFC 9110 section 10.2.3): seconds, or a date; 0 without one.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
