"""Routes: `path("cambist/", include("cambist.django.urls"))`. The webhook address is then `/cambist/hook`."""

from django.urls import path

from .views import hook

app_name = "cambist"
urlpatterns = [path("hook", hook, name="hook")]
