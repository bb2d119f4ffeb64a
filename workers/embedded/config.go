package embedded

import (
	"context"
	"net"

	"go.temporal.io/server/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	storeName   = "sqlite"
	clusterName = "active"
)

// settings holds what a benchmark varies. Start always uses tuned.
type settings struct {
	dynamic dynamicconfig.StaticClient
	shards  int32
}

func tuned() settings {
	return settings{dynamic: tuning(), shards: historyShards}
}

// serverOptions returns the options of a server with all four services in this process, on the given ports and store.
// Its calls end when stopping is done.
func serverOptions(stopping context.Context, set settings, p *ports, store *config.SQL, logger serverLogger) []temporal.ServerOption {
	return []temporal.ServerOption{
		temporal.WithConfig(serverConfig(set.shards, p, store)),
		temporal.ForServices(temporal.DefaultServices),
		// Known hosts need no membership protocol, which would add a second to the start and use four more ports.
		temporal.WithStaticHosts(map[primitives.ServiceName]static.Hosts{
			primitives.FrontendService: static.SingleLocalHost(dialable(p.frontend)),
			primitives.HistoryService:  static.SingleLocalHost(dialable(p.history)),
			primitives.MatchingService: static.SingleLocalHost(dialable(p.matching)),
			primitives.WorkerService:   static.SingleLocalHost(dialable(p.worker)),
		}),
		temporal.WithLogger(logger),
		temporal.WithDynamicConfigClient(set.dynamic),
		temporal.WithChainedFrontendGrpcInterceptors(endWith(stopping)),
		temporal.WithClientFactoryProvider(clientFactories{FactoryProvider: client.NewFactoryProvider(), stopping: stopping}),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
	}
}

func serverConfig(shards int32, p *ports, store *config.SQL) *config.Config {
	cfg := &config.Config{
		Persistence: config.Persistence{
			DefaultStore:     storeName,
			VisibilityStore:  storeName,
			NumHistoryShards: shards,
			DataStores:       map[string]config.DataStore{storeName: {SQL: store}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: dialable(p.frontend)},
			},
		},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(p.frontend),
			string(primitives.HistoryService):  service(p.history),
			string(primitives.MatchingService): service(p.matching),
			string(primitives.WorkerService):   service(p.worker),
		},
		PublicClient: config.PublicClient{HostPort: dialable(p.frontend)},
	}
	const off = "disabled"
	cfg.DCRedirectionPolicy.Policy = "noop"
	cfg.Archival.History.State = off
	cfg.Archival.Visibility.State = off
	cfg.NamespaceDefaults.Archival.History.State = off
	cfg.NamespaceDefaults.Archival.Visibility.State = off
	return cfg
}

func service(addr *net.TCPAddr) config.Service {
	return config.Service{RPC: config.RPC{BindOnIP: addr.IP.String(), GRPCPort: addr.Port}}
}
