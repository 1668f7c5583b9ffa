"""A shop in Django that sells one thing (docs/django.md). In this folder:

pip install 'cambist[django,testing]'
python manage.py test
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
    execute_from_command_line(sys.argv)
