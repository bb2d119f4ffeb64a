// Package metrics has the Prometheus metrics of a process. The leader shows those of placement and
// of every node's resources, a node shows those of attempts, and both show those of the Temporal SDK. The package knows
// the libraries of OpenTelemetry and Prometheus and nothing of Switchyard, so that every part may use it.
//
// # Names
//
// The metrics of a scrape are named only here. The dashboard in dev/grafana and the alerts in dev/deploy/alerts.yaml use
// them, and tests keep the three consistent. The label "node" is the name of a node, "type" the type of a task, and
// "state" a state of the data model.
//
//	switchyard_build_info{version,goversion}            1
//	switchyard_runs_total{workflow,state}               runs that ended, by state
//	switchyard_tasks_total{type,state}                  their tasks and instances
//	switchyard_task_attempts_total{type,state}          attempts that ended on nodes, by state
//	switchyard_task_queue_seconds{type}                 from ready to placed
//	switchyard_task_run_seconds{type,state}             from the start of the process to its end
//	switchyard_placement_tasks{state}                   tasks that wait, or hold a place
//	switchyard_placement_decisions_total{type}          tasks that were given to a node
//	switchyard_placement_reassignments_total{reason}    dispatches that ended without an attempt, or were lost with a node
//	switchyard_placement_leader                          1 while this process is the leader
//	switchyard_nodes{state}                             nodes of the fleet
//	switchyard_node_heartbeat_age_seconds{node}         age of the newest heartbeat
//	switchyard_node_slots{node,kind}                    total and used
//	switchyard_node_cores{node,kind}                    total and reserved
//	switchyard_node_memory_bytes{node,kind}             total and reserved
//	switchyard_node_gpus{node,kind}                     total and reserved
//	switchyard_worker_claims_total{node}                attempts that a node accepted
//	switchyard_worker_claim_contention_total{node}      attempts that it handed back because another held or wanted the place
//	switchyard_worker_lease_expirations_total{node,outcome}
//	                                                    attempts whose lease expired: "ended" by their node, which counts
//	                                                    them itself, or "lost" with it, which the leader counts
//	switchyard_agent_turns_total                        replies of models to agents on this node
//	switchyard_agent_tool_calls_total{tool}             tool calls of these agents; beyond 200 tools, "(other)"
//	switchyard_agent_tokens_total{model,direction}      tokens: "input" without those of the cache, "output",
//	                                                    "cache_read" and "cache_write"; beyond 50 models, "(other)"
//	switchyard_agent_cost_usd_total{model}              cost of these agents, by the prices of the node
//	switchyard_node_suspicions_total{node}              dispatches that it did not pick up, or did not start
//	temporal_*                                          those of the SDK
//
// Times are in seconds. All methods are safe for concurrent use. The methods of a nil *Metrics do nothing.
package metrics
