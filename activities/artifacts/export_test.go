package artifacts

import (
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// Digest returns the digest that the artifact of a manifest has.
func Digest(m *v1.ArtifactManifest) (string, error) {
	encoded, err := treeDecoder().DecodeAll(m.GetTree(), nil)
	if err != nil {
		return "", err
	}
	tree := &v1.ArtifactTree{}
	err = proto.Unmarshal(encoded, tree)
	return digestOfTree(tree, m), err
}
