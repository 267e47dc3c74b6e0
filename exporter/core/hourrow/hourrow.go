// Package hourrow names the rows of hours of the line protocol: outputs write them, alerts and reports read them.
package hourrow

import (
	"strconv"
	"strings"
)

// Measurements of the rows.
const (
	// OfDirection has the packets and delays of a direction, OfRoundTrip has round trips and availability, OfVoice has the ratings of calls.
	OfDirection = "oneway_hour"
	OfRoundTrip = "oneway_hour_round_trip"
	OfVoice     = "oneway_hour_voice"
)

// Fields of the numbers of values.
const (
	Delays     = "delays"
	RoundTrips = "round_trip_times"
)

// Bucket is the field of the values up to a bound in seconds; of is the field of the number of all.
func Bucket(of string, bound float64) string {
	return of + "_le_" + strings.ReplaceAll(strconv.FormatFloat(bound, 'f', -1, 64), ".", "_")
}
