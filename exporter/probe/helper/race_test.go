//go:build race

package helper

// race: the race detector's own memory exceeds the limit of a test.
const race = true
