# Sourced: tracked DIRECTORY PATH ... copies files of the repository alone, with the modes that git knows: directories that are packed
# have secrets of those who use them, and a clone has the modes of a umask.
tracked() {
  local to=$1
  shift
  git ls-files -z -- "$@" | xargs -0 cp --parents -t "$to"
  chmod -R u=rwX,go=rX "$to"
}
