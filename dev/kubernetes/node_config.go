package main

import (
	"errors"
	"fmt"
	"os"
)

// writeNodeConfig writes the configuration of containerd, its network plugins and the kubelet.
func (f files) writeNodeConfig(kubeletPort int, cniBin string) error {
	containerd := fmt.Sprintf(containerdConfig, f.path("containerd"), containerdSocket, cniBin, f.path("cni"))
	network := fmt.Sprintf(networkConfig, bridge, f.path("cni-addresses"), podSubnet)
	kubelet := fmt.Sprintf(kubeletConfig, nodeIP, kubeletPort, containerdSocket, nodeCgroup)
	return errors.Join(
		os.WriteFile(f.path("containerd.toml"), []byte(containerd), 0o600),
		os.WriteFile(f.path("cni/10-bridge.conflist"), []byte(network), 0o600),
		os.WriteFile(f.path("kubelet.yaml"), []byte(kubelet), 0o600),
	)
}

// containerdConfig is for version 1.6 and later. Root in a container may lack CAP_SYS_RESOURCE, which lowering an OOM
// score requires.
const containerdConfig = `version = 2
root = %q
state = "/run/containerd"
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/` + pauseImage + `"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`

const networkConfig = `{
  "cniVersion": "0.4.0",
  "name": "switchyard-kubernetes",
  "plugins": [{
    "type": "bridge",
    "bridge": %q,
    "isGateway": true,
    "hairpinMode": true,
    "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`

// kubeletConfig lets every caller on the machine use the kubelet. The kubelet reports its node often, so that a lost
// node is noticed early, and does not evict pods from a nearly full machine.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
port: %d
readOnlyPort: 0
healthzPort: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%s
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%s
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
registerNode: true
resolvConf: ""
clusterDNS: []
serializeImagePulls: false
nodeStatusUpdateFrequency: 5s
nodeStatusReportFrequency: 1m
nodeLeaseDurationSeconds: 20
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: 10Mi, nodefs.inodesFree: "10", imagefs.available: 10Mi}
shutdownGracePeriod: 0s
`
