import type { RouteTool } from 'svc-gateway/plugin'

/** What agents may do with the model store. */
export const storeTools = {
  read: {
    name: 'model_store',
    title: 'Model store',
    description: 'Shows the folder of the models, its free space, and other disks with free space. Call it before large downloads.',
    readOnly: true
  },
  set: {
    name: 'model_store_set',
    title: 'Keep models elsewhere',
    description: 'Changes the folder of the models; `keep` leaves the current ones where they are, `migrate` moves them. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    primary: 'path'
  },
  migrate: {
    name: 'model_store_migrate',
    title: 'Move all models',
    description: 'Changes the folder of the models and moves them there, which may take long. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    primary: 'path'
  },
  probe: {
    name: 'model_store_probe',
    title: 'Settings of the model store',
    description: 'Returns the settings for model folders: where to look for models and which files count. Call it when model_scan does not find a file.',
    readOnly: true
  }
} satisfies Record<string, RouteTool>
