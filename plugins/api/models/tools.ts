import type { RouteTool } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { pullListSchema, pullSchema } from './pull-schemas.js'
import type { ModelListRow } from './record-schema.js'
import type { catalogueSchema, listSchema, previewSchema } from './schemas.js'

/** A model in a list for a model: what a choice depends on. */
function shortRow (row: ModelListRow): Record<string, unknown> {
  const { id, owned_by, installed, type } = row
  const about = 'path' in row ? { size_bytes: row.size_bytes, capabilities: row.capabilities } : {}
  return { id, type, owned_by, ...about, ...(installed ? {} : { installed }) }
}

type Catalogue = z.output<typeof catalogueSchema>

function shortCuratedRow ({ id, display_name: title, description, size_gb, capability, installed, license, fit }: Catalogue['pullable'][number]) {
  const why = fit.reasons.length === 0 ? {} : { why: fit.reasons }
  return { id, title, description, size_gb, capability, installed, license, fit: fit.status, ...why }
}

function shortPull ({ model_id, state, bytes_downloaded, bytes_total, eta_s, error }: z.output<typeof pullSchema>) {
  return { model_id, state, bytes_downloaded, bytes_total, eta_s, error }
}

type Preview = z.output<typeof previewSchema>

function shortFile ({ path, size_bytes, suggested_id: id, suggested_capabilities: capabilities, kind, problem }: Preview['preview'][number]) {
  return { path, size_bytes, id, capabilities, kind, problem }
}

const byId = { rename: { id: 'model_id' }, primary: 'model_id' } as const

/** What agents may do with models. */
export const modelTools = {
  list: {
    name: 'model_list',
    title: 'List models',
    description: 'Lists the models that this machine has and those of its upstreams. Call it to find the id of a model before loading, swapping or assigning it.',
    readOnly: true,
    short: ({ models, count }: z.output<typeof listSchema>) => ({ models: models.map(shortRow), count }),
    narrow: 'narrow it with `search`, a part of the name'
  },
  show: {
    name: 'model_show',
    title: 'Look at a model',
    description: 'Shows everything about one model: file, size, context length, capabilities and defaults. Call it before running a model to see whether it fits.',
    readOnly: true,
    ...byId
  },
  catalogue: {
    name: 'model_catalogue',
    title: 'Models worth pulling',
    description: 'Lists models that are known to work well, with their size and whether they fit this machine. Call it when the user wants a new model and names none.',
    readOnly: true,
    short: ({ pullable, counts }: Catalogue) => ({ models: pullable.map(shortCuratedRow), counts }),
    narrow: 'ask for one model with model_show'
  },
  pull: {
    name: 'model_pull',
    title: 'Download a model',
    description: 'Downloads a model from the catalogue, or from a repository of the hub with hf_repo and hf_filename; the download runs in the background. An operator has to approve it; then follow it with model_pull_status.',
    gated: true,
    destructive: false,
    idempotent: true,
    openWorld: true,
    ...byId,
    show: ['hf_repo', 'hf_filename', 'revision', 'labels', 'mmproj_filename']
  },
  pulls: {
    name: 'model_pulls_list',
    title: 'List downloads',
    description: 'Lists the latest download of every model with its progress or result. Call it to see what is being downloaded.',
    readOnly: true,
    short: ({ pulls }: z.output<typeof pullListSchema>) => ({ pulls: pulls.map(shortPull), count: pulls.length }),
    narrow: 'ask for one with model_pull_status'
  },
  pullStatus: {
    name: 'model_pull_status',
    title: 'Progress of a download',
    description: 'Shows the progress or result of the download of a model. Call it after model_pull was approved, every few seconds until it is completed.',
    readOnly: true,
    ...byId
  },
  pullCancel: {
    name: 'model_pull_cancel',
    title: 'Stop a download',
    description: 'Cancels the download of a model and removes its partial files. Call it when the user no longer wants the model.',
    destructive: true,
    idempotent: true,
    ...byId
  },
  inspect: {
    name: 'model_inspect',
    title: 'List the files of a repository',
    description: 'Lists the files of a repository of the hub that can be pulled, with their sizes. Call it to choose hf_filename for model_pull.',
    readOnly: true,
    openWorld: true,
    narrow: 'choose one of those'
  },
  register: {
    name: 'model_register',
    title: 'Register a model',
    description: 'Registers an existing model file with all given details. Call model_add instead if the header of the file is enough; an operator has to approve it.',
    gated: true,
    destructive: false,
    rename: { id: 'model_id' },
    primary: 'model_id',
    show: ['path', 'name', 'capabilities', 'backends']
  },
  add: {
    name: 'model_add',
    title: 'Register a model file',
    description: 'Registers a model file of this machine with the facts from its header. Call it for a file that model_scan_preview found; an operator has to approve it.',
    gated: true,
    destructive: false,
    primary: 'path'
  },
  edit: {
    name: 'model_edit',
    title: 'Change a model',
    description: 'Changes the name, capabilities or default settings of a registered model; null removes a default. Slots use it from their next start.',
    destructive: false,
    idempotent: true,
    ...byId,
    show: ['name', 'capabilities', 'defaults']
  },
  remove: {
    name: 'model_delete',
    title: 'Forget a model',
    description: 'Removes a model from the registry; its file stays. Call it only when the user wants it gone; an operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...byId
  },
  preview: {
    name: 'model_scan_preview',
    title: 'Look for model files',
    description: 'Finds and identifies model files below folders of this machine, without registering them. Call it when the user says where models are.',
    readOnly: true,
    short: ({ preview, count }: Preview) => ({ files: preview.map(shortFile), count }),
    narrow: 'name fewer folders in `paths`'
  },
  scan: {
    name: 'model_scan',
    title: 'Register the models of the store',
    description: 'Scans the configured model folders and registers new models. Call it after model files were added.',
    destructive: false,
    idempotent: true,
    show: []
  }
} satisfies Record<string, RouteTool>
