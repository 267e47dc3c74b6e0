//go:build !race

package helper

const race = false
