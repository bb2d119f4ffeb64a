package artifacts

import (
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// maxPackedInstances bounds the packed artifacts of the instances of a task. Together with the largest outputs they are a value that a
// gateway sends. An artifact takes about 45 bytes.
const maxPackedInstances = 7 << 19

// PackInstances returns the artifacts of the instances of a task in the form that a list of outputs has, or nil if there are none, or
// too many. Equal artifacts are packed alike.
func PackInstances(all *historyv1.InstanceArtifacts) ([]byte, error) {
	if len(all.GetList()) == 0 {
		return nil, nil
	}
	plain, err := proto.MarshalOptions{Deterministic: true}.Marshal(all)
	if err != nil {
		return nil, err
	}
	packed := encoder().EncodeAll(plain, nil)
	if len(packed) > maxPackedInstances {
		return nil, nil
	}
	return packed, nil
}

// UnpackInstances returns the artifacts that PackInstances has packed.
func UnpackInstances(packed []byte) (*historyv1.InstanceArtifacts, error) {
	all := &historyv1.InstanceArtifacts{}
	plain, err := treeDecoder().DecodeAll(packed, nil)
	if err == nil {
		err = proto.Unmarshal(plain, all)
	}
	if err != nil {
		return nil, invalid("the list of artifacts is damaged: %v", err)
	}
	return all, nil
}
