import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addUpstreamAdd, addUpstreamEdit, addUpstreamRemove } from './change.js'
import { addUpstreamKey } from './key.js'
import { addUpstreamList, addUpstreamShow } from './list.js'
import { addUpstreamTest } from './test.js'

export function addUpstreamCommands (program: Command, cli: Cli): void {
  const upstream = program.command('upstream').description('manage upstreams: remote providers of models')
  addUpstreamList(upstream, cli)
  addUpstreamShow(upstream, cli)
  addUpstreamAdd(upstream, cli)
  addUpstreamEdit(upstream, cli)
  addUpstreamRemove(upstream, cli)
  addUpstreamTest(upstream, cli)
  addUpstreamKey(upstream, cli)
}
