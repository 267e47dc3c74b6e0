// Package report keeps the reports of heavy tests' runs in a directory: one gzip
// file of JSON a run, named by the run's id, the oldest removed when there are too
// many or they take too much room.
//
// A report is {"header": {...}, "body": ...}; the header comes first, so that a
// directory can be listed without reading the bodies. What a header is made of may
// come from elsewhere (a peer's words): whoever shows it escapes it.
//
// No run fails because of its report: a full disk or a directory that cannot be
// written is an error that is returned, counted and logged, and the header is
// still listed.
package report
