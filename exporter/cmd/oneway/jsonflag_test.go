package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSummaryHasAllFieldsAndNoRows(t *testing.T) {
	const whole = `{"z":1.50,"a":{"rows":[[1,null],[2,3]],"columns":["x"],"b":[{"sender_rows":[[1]],"count":12345678901234567890},{"receiver_rows":null}]},"rows":"text","ü\"":[],"first_rows":7}`
	const want = `{"z":1.50,"a":{"rows":[],"columns":["x"],"b":[{"sender_rows":[],"count":12345678901234567890},{"receiver_rows":null}]},"rows":"text","ü\"":[],"first_rows":7}`
	if got, err := withoutRows([]byte(whole)); err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if got, err := withoutRows([]byte(`{"a":[`)); err == nil {
		t.Errorf("an incomplete document is %s", got)
	}
}

func TestSummaryIsAValueOfTheFlagOnly(t *testing.T) {
	got := withSummaryFlag([]string{"test", "tcp", "--json=summary", "h", "--", "--json=summary"})
	if want := []string{"test", "tcp", "--json-summary", "h", "--", "--json=summary"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	app := application().Terminate(nil)
	if _, err := app.Parse(withSummaryFlag(strings.Fields("test tcp h --no-agent --json=summary"))); err == nil || !strings.Contains(err.Error(), "--token-file is missing") {
		t.Errorf("the flag is not accepted: %v", err)
	}
}
