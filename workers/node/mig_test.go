package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// These are the outputs of nvidia-smi for two GPUs, of which the second is split, in the form that NVIDIA's guide to MIG shows.
const (
	splitQuery = "0, NVIDIA A100-SXM4-40GB, 40960, 5, 12, 00000000:07:00.0\n1, NVIDIA A100-SXM4-40GB, 40960, 37, [N/A], 00000000:0F:00.0\n"
	splitList  = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-4404041a-04cf-1ccf-9e70-f139a9b1e23c)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 1g.5gb+me   Device  1: (UUID: MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/7/0)
  MIG 1g.5gb      Device  2: (UUID: MIG-ba0f4ed5-8b1b-5cc1-9b5e-a7c9b1a1b9e3)
`
	splitTable = `+-----------------------------------------------------------------------------+
| MIG devices:                                                                |
+------------------+----------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared        |
|      ID  ID  Dev |           BAR1-Usage | SM     Unc| CE  ENC  DEC  OFA  JPG|
|                  |                      |        ECC|                       |
|==================+======================+===========+=======================|
|  1    1   0   0  |     22MiB / 20096MiB | 42      0 |  3   0    2    0    0 |
|                  |      0MiB / 32767MiB |           |                       |
+------------------+----------------------+-----------+-----------------------+
|  1    7   0   1  |      3MiB /  4864MiB | 14      0 |  1   0    0    0    0 |
|                  |      0MiB /  8191MiB |           |                       |
+------------------+----------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|    1    1    0     140514      C   python                            19MiB  |
+-----------------------------------------------------------------------------+
`
)

// TestMIGDevicesTakeThePlaceOfTheirGPU checks that each MIG device is one of the machine's GPUs, and the GPU that is split is not.
func TestMIGDevicesTakeThePlaceOfTheirGPU(t *testing.T) {
	t.Parallel()
	broken := ""
	smi := func(_ context.Context, _ string, args ...string) ([]byte, error) {
		switch {
		case len(args) > 0 && args[0] == broken:
			return nil, errors.New("exit status 9")
		case slices.Equal(args, gpuQuery):
			return []byte(splitQuery), nil
		case slices.Equal(args, []string{"-L"}):
			return []byte(splitList), nil
		}
		return []byte(splitTable), nil
	}
	sys := fstest.MapFS{"bus/pci/devices/0000:0f:00.0/numa_node": {Data: []byte("1\n")}}
	got, err := readGPUs(t.Context(), smi, sys)
	if err != nil {
		t.Fatal(err)
	}
	want := []*v1.GpuSnapshot{
		{Name: "NVIDIA A100-SXM4-40GB", MemoryMb: 40960, MemoryUsedMb: 5, UsagePercent: 12},
		{Index: 200, Name: "NVIDIA A100-SXM4-40GB MIG 3g.20gb", MemoryMb: 20096, MemoryUsedMb: 22, NumaNode: proto.Int32(1), MigUuid: "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"},
		{Index: 201, Name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", MemoryMb: 4864, MemoryUsedMb: 3, NumaNode: proto.Int32(1), MigUuid: "MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/7/0"},
		{Index: 202, Name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb", NumaNode: proto.Int32(1), MigUuid: "MIG-ba0f4ed5-8b1b-5cc1-9b5e-a7c9b1a1b9e3"},
	}
	if !slices.EqualFunc(got, want, func(a, b *v1.GpuSnapshot) bool { return proto.Equal(a, b) }) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if size := sizeOf(&v1.NodeSnapshot{Gpus: got}); size.GPUs[1] != (GPU{Index: 200, MemoryMB: 20096, MIGUUID: "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"}) {
		t.Errorf("the ledger has %v", size.GPUs)
	}
	broken = "-L"
	if got, err := readGPUs(t.Context(), smi, sys); err == nil {
		t.Errorf("got %v without the list of devices", got)
	}
}
