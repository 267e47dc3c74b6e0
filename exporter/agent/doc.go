// Package agent runs what a configuration says: a clock monitor and beside it the
// watchers of a GNSS receiver and its pulse, a reflector and a prober for each probe of
// each path, one pacer for all of them.
//
// What fails is retried and shown, and stops nothing else: an agent starts
// without its clock daemon, with its reflector's port taken and with names that
// do not resolve. Only a configuration that cannot be right is refused, and
// then the one before it stays in force.
//
// A reload keeps the probers whose configuration means the same, with their
// sessions and counters. The content of key files is part of the meaning. Reloads that are
// asked for within a second of the last are one.
package agent
