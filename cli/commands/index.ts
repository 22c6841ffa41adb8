import type { Command } from 'commander'
import type { Cli } from '../cli.js'

/** A command of the first level, as the list of commands shows it; what it takes is loaded when it is called. */
export interface CommandGroup {
  readonly usage: string
  readonly about: string
  readonly load: () => Promise<(program: Command, cli: Cli) => void>
}

/** In the order of the help text. */
export const commandGroups: readonly CommandGroup[] = [
  {
    usage: 'serve [options]',
    about: 'start the gateway and run it until it is stopped',
    load: async () => (await import('./serve.js')).addServeCommand
  },
  {
    usage: 'setup [options]',
    about: 'set up a new machine: detect its hardware, create slots, download their models',
    load: async () => (await import('./setup.js')).addSetupCommand
  },
  {
    usage: 'demo [options]',
    about: 'start a gateway, stream one answer through it, and stop it',
    load: async () => (await import('./demo.js')).addDemoCommand
  },
  {
    usage: 'chat [options] [prompt]',
    about: 'ask a model and stream its answer; without a prompt, start a conversation',
    load: async () => (await import('./chat.js')).addChatCommand
  },
  {
    usage: 'status [options]',
    about: 'show the state of the gateway and its slots',
    load: async () => (await import('./status.js')).addStatusCommand
  },
  {
    usage: 'probe [options]',
    about: 'probe the hardware of the gateway\'s machine again',
    load: async () => (await import('./probe.js')).addProbeCommand
  },
  {
    usage: 'ps [options]',
    about: 'list the requests in flight and what each is waiting for',
    load: async () => (await import('./ps.js')).addPsCommand
  },
  {
    usage: 'cancel <id>',
    about: 'cancel a request in flight; `svc ps` shows the ids',
    load: async () => (await import('./cancel.js')).addCancelCommand
  },
  {
    usage: 'slot',
    about: 'manage slots: engines that the gateway runs',
    load: async () => (await import('./slot/index.js')).addSlotCommands
  },
  {
    usage: 'upstream',
    about: 'manage upstreams: remote providers of models',
    load: async () => (await import('./upstream/index.js')).addUpstreamCommands
  },
  {
    usage: 'mcp',
    about: 'manage tool servers, and connect programs to them',
    load: async () => (await import('./mcp/index.js')).addMcpCommands
  },
  {
    usage: 'memory',
    about: 'manage the memory of agents and chats',
    load: async () => (await import('./memory/index.js')).addMemoryCommands
  },
  {
    usage: 'agent',
    about: 'run agents on this gateway, and manage their personas and permissions',
    load: async () => (await import('./agent/index.js')).addAgentCommands
  },
  {
    usage: 'alias',
    about: 'manage aliases: other names that clients may use for models',
    load: async () => (await import('./alias/index.js')).addAliasCommands
  },
  {
    usage: 'model',
    about: 'manage models: files that slots load',
    load: async () => (await import('./model/index.js')).addModelCommands
  },
  {
    usage: 'profile',
    about: 'manage profiles: images with tuned flags that slots run with',
    load: async () => (await import('./profile/index.js')).addProfileCommands
  },
  {
    usage: 'stack',
    about: 'manage stacks: bundles of slots, models and capabilities',
    load: async () => (await import('./stack/index.js')).addStackCommands
  },
  {
    usage: 'capabilities',
    about: 'choose what serves embeddings, reranking, speech and images',
    load: async () => (await import('./capabilities/index.js')).addCapabilitiesCommands
  },
  {
    usage: 'service',
    about: 'manage services: programs beside the gateway, and the gateway as one itself',
    load: async () => (await import('./service/index.js')).addServiceCommands
  },
  {
    usage: 'board',
    about: 'show the board: tasks for people and agents',
    load: async () => (await import('./board/index.js')).addBoardCommands
  },
  {
    usage: 'config',
    about: 'show, edit and check the configuration files',
    load: async () => (await import('./config/index.js')).addConfigCommands
  },
  {
    usage: 'doctor [options]',
    about: 'check whether this machine has what the gateway needs',
    load: async () => (await import('./doctor.js')).addDoctorCommands
  },
  {
    usage: 'registry',
    about: 'manage the model registry without a gateway',
    load: async () => (await import('./registry.js')).addRegistryCommands
  },
  {
    usage: 'migrate',
    about: 'migrate files of older installations to the current layout',
    load: async () => (await import('./migrate.js')).addMigrateCommands
  },
  {
    usage: 'plugin',
    about: 'manage plugins: packages that extend the gateway',
    load: async () => (await import('./plugin/index.js')).addPluginCommands
  },
  {
    usage: 'engine',
    about: 'manage engines that run without containers',
    load: async () => (await import('./engine/index.js')).addEngineCommands
  },
  {
    usage: 'cluster',
    about: 'prepare a Kubernetes cluster for slots',
    load: async () => (await import('./cluster/index.js')).addClusterCommands
  },
  {
    usage: 'update [options]',
    about: 'install a newer release of the gateway, or roll back to the previous one',
    load: async () => (await import('./update/index.js')).addUpdateCommand
  },
  {
    usage: 'uninstall [options]',
    about: 'remove the gateway from this machine',
    load: async () => (await import('./uninstall.js')).addUninstallCommand
  },
  {
    usage: 'completion <shell>',
    about: 'print the shell completion script for svc',
    load: async () => (await import('./completion.js')).addCompletionCommands
  }
]

export function nameOf ({ usage }: CommandGroup): string {
  return usage.split(' ', 1)[0]!
}
