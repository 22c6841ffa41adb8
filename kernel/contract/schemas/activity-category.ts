/** What rows of the audit trail are about; the types of events begin with one of these. */
export const activityCategories = [
  'slot', 'model', 'profile', 'stack', 'capability', 'backend', 'provider', 'upstream', 'mcp', 'agent', 'approval', 'updater',
  'pull', 'plugin', 'services', 'memory', 'board', 'install', 'gpu', 'settings', 'secrets',
  'system'
] as const
