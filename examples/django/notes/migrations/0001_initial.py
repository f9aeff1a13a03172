from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            name="Note",
            fields=[("id", models.BigAutoField(primary_key=True)), ("text", models.TextField())],
        ),
    ]
