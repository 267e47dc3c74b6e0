// Package stack tests the whole stack with real servers in containers: README.md.
package stack
