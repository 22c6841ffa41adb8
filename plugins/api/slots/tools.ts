import type { RouteTool } from 'svc-gateway/plugin'
import type { RemoteSlotRow, SlotRow } from './record/record-schema.js'

/** A slot in a list for a model: what it is, what it does, and why it does not. */
function shortRow (row: SlotRow | RemoteSlotRow): Record<string, unknown> {
  if (row.kind === 'unread') return { name: row.name, state: 'error', message: row.metadata.message }
  if (row.kind === 'remote-slot') return { name: row.name, type: row.type, state: row.state, model: row.model_id ?? row.model_default, on: row.url }
  if (row.kind !== 'local') return { name: row.name, kind: 'upstream', state: row.state, url: row.url, models: row.advertised_models }
  const { name, type, state, enabled, device, model_id, model_default, metadata: { message, failure, config_error } } = row
  return {
    name, type, state, enabled, device,
    model: model_id ?? model_default ?? null,
    ...(message === '' ? {} : { message }),
    ...(failure === undefined ? {} : { failure: `${failure.code}: ${failure.message}` }),
    ...(config_error === undefined ? {} : { config_error })
  }
}

/** One slot for a model: without what only a dashboard draws, and with what the engine said last when it failed. */
function shortRecord (row: SlotRow): Record<string, unknown> {
  if (row.kind !== 'local') return shortRow(row)
  const { port, provider, profile, runtime, image, mem_mb, ctx_max, pinned, role, served_by, metrics, metadata } = row
  const { failure, in_flight, waiting, generation, progress, file_problems, pending_model, pull_failed } = metadata
  const { fit_warning, findings, config_drift } = row
  return present({
    ...shortRow(row),
    pinned, role, port, provider, profile, runtime, image, mem_mb, served_by, config_drift, fit_warning,
    context_size: ctx_max,
    tokens_per_second: metrics.toks,
    in_flight, waiting, starts: generation, progress, pending_model, pull_failed, file_problems, findings,
    failure: failure === undefined ? undefined : { ...failure, log_tail: failure.log_tail.slice(-30) }
  })
}

function present (fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null))
}

const name = { primary: 'name' } as const

/** What agents may do with slots. */
export const slotTools = {
  list: {
    name: 'slot_list',
    title: 'List slots',
    description: 'Lists all slots, in which models run, with state, model and problems. Call it first to find out what serves and what fails.',
    readOnly: true,
    short: (rows: readonly SlotRow[]) => ({ slots: rows.map(shortRow), count: rows.length }),
    narrow: 'ask for one slot with slot_status'
  },
  status: {
    name: 'slot_status',
    title: 'Look at a slot',
    description: 'Shows everything about one slot: state, model, engine, memory, and after a failure the reason with the last lines of its log. Call it to learn why a slot does not serve.',
    readOnly: true,
    short: shortRecord
  },
  metrics: {
    name: 'slot_metrics',
    title: 'Counters of slots',
    description: 'Returns requests, tokens and speed of every slot. Call it to compare how busy or how fast slots are.',
    readOnly: true
  },
  capacity: {
    name: 'slot_capacity',
    title: 'Memory of slots',
    description: 'Returns the memory that each slot uses or would need, and the limit of slots. Call it before creating or loading a slot.',
    readOnly: true
  },
  create: {
    name: 'slot_create',
    title: 'Create a slot',
    description: 'Creates a slot for a model without starting it. Call it when no slot fits the model or the task; an operator has to approve it.',
    gated: true,
    destructive: false,
    ...name,
    show: ['type', 'device', 'model', 'context_size', 'profile', 'provider', 'enabled', 'pinned', 'idle_timeout_s'],
    short: shortRecord
  },
  remove: {
    name: 'slot_delete',
    title: 'Delete a slot',
    description: 'Stops a slot and removes its configuration; its model stays. Call it only when the user wants the slot gone; an operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...name
  },
  edit: {
    name: 'slot_edit',
    title: 'Change a slot',
    description: 'Changes settings of a slot, such as its context size, idle time or whether it is enabled; null removes a setting. Most take effect when the slot restarts.',
    destructive: false,
    idempotent: true,
    ...name,
    show: ['enabled', 'model', 'context_size', 'n_gpu_layers', 'device', 'profile', 'pinned', 'idle_timeout_s', 'workers', 'extra_args', 'enable_thinking'],
    short: shortRecord
  },
  assign: {
    name: 'model_assign',
    title: 'Change the model of a slot permanently',
    description: 'Sets the model that a slot runs from its next start. Call it to make a choice permanent; model_swap changes the running model.',
    destructive: false,
    idempotent: true,
    ...name,
    rename: { default: 'model_id' },
    show: ['model_id', 'context_size'],
    short: shortRecord
  },
  load: {
    name: 'slot_load',
    title: 'Start a slot',
    description: 'Starts a slot and waits until it serves, which may take minutes for a large model. Call it when a slot is unloaded or has failed; `model_id` starts it with another model.',
    destructive: false,
    idempotent: true,
    ...name,
    show: ['model_id'],
    short: shortRecord
  },
  unload: {
    name: 'slot_unload',
    title: 'Stop a slot',
    description: 'Stops the engine of a slot and frees its memory; the next request starts it again. Call it to make room for another model.',
    destructive: false,
    idempotent: true,
    ...name,
    short: shortRecord
  },
  restart: {
    name: 'slot_restart',
    title: 'Restart a slot',
    description: 'Restarts a slot and ends its running answers. Call it when a slot misbehaves or changed settings should take effect; an operator has to approve it.',
    gated: true,
    destructive: true,
    ...name,
    short: shortRecord
  },
  swap: {
    name: 'model_swap',
    title: 'Swap the model of a slot',
    description: 'Runs another model in a slot now and waits until it serves; the configuration stays as it is. Call it to try a model, or to change models for a task.',
    destructive: false,
    idempotent: true,
    ...name,
    show: ['model_id'],
    short: shortRecord
  },
  logs: {
    name: 'slot_logs',
    title: 'Read the log of a slot',
    description: 'Returns the last log lines of the engine of a slot. Call it when slot_status does not explain a failure; an operator has to approve it.',
    gated: true,
    readOnly: true,
    ...name,
    show: ['lines'],
    narrow: 'ask for fewer with `lines`'
  }
} satisfies Record<string, RouteTool>
