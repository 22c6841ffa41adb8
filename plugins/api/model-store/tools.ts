import type { RouteTool } from 'svc-gateway/plugin'

/** What agents may do with the model store. */
export const storeTools = {
  read: {
    name: 'model_store',
    title: 'Where models are kept',
    description: 'Tells the folder in which models are kept, its free space, and other disks with room. Call it before large downloads.',
    readOnly: true
  },
  set: {
    name: 'model_store_set',
    title: 'Keep models elsewhere',
    description: 'Makes another folder the place for models; `keep` leaves the present ones where they are, `migrate` moves them. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    primary: 'path'
  },
  migrate: {
    name: 'model_store_migrate',
    title: 'Move all models',
    description: 'Makes another folder the place for models and moves them there, which may take long. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    primary: 'path'
  },
  probe: {
    name: 'model_store_probe',
    title: 'Settings of the model store',
    description: 'Gives the settings for model folders: where models are looked for and which files count. Call it when model_scan does not find a file.',
    readOnly: true
  }
} satisfies Record<string, RouteTool>
