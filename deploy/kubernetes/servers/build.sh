#!/usr/bin/env bash
# Builds the programs of a control plane in a directory, for make deploy-test: etcd, Kubernetes with kubectl, kwok; and the CRDs of the Prometheus operator.
# With an empty cache it takes half an hour of two processors.
# usage: deploy/kubernetes/servers/build.sh DIRECTORY
set -euo pipefail
out=$(realpath -m "${1:?usage: deploy/kubernetes/servers/build.sh DIRECTORY}")
cd "$(dirname "$0")"
go=${GO:-go}
kwok=v0.8.0 generator=v0.23.0 operator=v0.95.2
export CGO_ENABLED=0
mkdir -p "$out/crds"

directory() { "$go" mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; } # module@version

# Without its version, clients do not know which API the server has.
kubernetes=$("$go" list -m -f '{{.Version}}' k8s.io/kubernetes)
nice "$go" build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes" -o "$out/" tool
mv "$out/server" "$out/etcd"
GOBIN=$out nice "$go" install -trimpath -ldflags "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=$kwok" sigs.k8s.io/kwok/cmd/kwok@$kwok
stages=$(directory sigs.k8s.io/kwok@$kwok)/kustomize/stage
for file in "$stages"/{node,pod}/fast/*-*.yaml; do
  echo ---
  cat "$file"
done >"$out/stages.yaml"

GOBIN=$out nice "$go" install -trimpath sigs.k8s.io/controller-tools/cmd/controller-gen@$generator
types=$(mktemp -d)
trap 'chmod -R u+w "$types"; rm -rf "$types"' EXIT
cp -r "$(directory github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring@$operator)/." "$types/"
chmod -R u+w "$types"
(cd "$types" && "$out/controller-gen" crd paths=./v1 paths=./v1alpha1 "output:dir=$out/crds")
find "$out/crds" -name '*.yaml' ! -name '*_podmonitors.yaml' ! -name '*_prometheusrules.yaml' ! -name '*_scrapeconfigs.yaml' -delete
echo $operator >"$out/crds/version"
