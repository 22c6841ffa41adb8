import { ownedFile } from './config/load/owned-files.js'
import { pluginFolder } from './host/packages/plugin-home.js'
import type { PluginState } from './host/record/stage.js'
import type { KernelServices } from './kernel-services.js'

/** What a plugin has of its own in this home. */
export function pluginState ({ config, tables }: KernelServices, plugin: string): PluginState {
  return {
    folder: () => pluginFolder(config.paths.state, plugin),
    table: tables.of(plugin),
    file: (definition, signal) => ownedFile(config, definition, signal)
  }
}
