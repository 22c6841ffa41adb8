import { defineErrors } from 'svc-gateway/plugin'

export const modelsError = defineErrors('models', {
  store_migration_failed: { status: 400, when: 'the models cannot be moved to another store' }
})
