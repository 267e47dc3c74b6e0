package config

// Limits of a configuration, and of the messages about it.
const (
	// maxFileBytes limits all files together; it is enough for some hundred thousand paths.
	maxFileBytes = 64 << 20
	// maxVisits limits the values that come from aliases and merge keys: few lines of aliases to aliases can expand to billions of
	// values. The size of the file limits the others.
	maxVisits = 1_000_000
	// maxMerging limits the nesting of merged mappings, since a mapping can merge itself.
	maxMerging = 4
	// maxIncludeDepth limits the nesting of included files, maxIncluded the number of files.
	maxIncludeDepth = 8
	maxIncluded     = 10_000
	// maxDigest exceeds the number of values in the options of a probe; values beyond it, from aliases to aliases, are represented by
	// their places in the file.
	maxDigest = 10_000
	// maxProblems limits the errors of one decoder, maxShown those that Error shows.
	maxProblems = 1000
	maxShown    = 50
	// maxShownName is the length in bytes from which a name of the file is cut in messages: some lines may have megabytes.
	maxShownName = 200
)
