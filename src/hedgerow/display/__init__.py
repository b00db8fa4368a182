"""What people see: short texts of objects (`text`), HTML pieces (`html`), lines, tables and bars (`output`)."""
