enum bool flag { on = true }
